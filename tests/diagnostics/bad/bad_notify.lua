local mill = require "tidemill"
local key = mill.secret "SHOP_SECRET"

return mill.workflow {
  name = "bad",
  sandbox = "none",
  agent = { model = "tide" },
  prompt = "Decide.",
  notify = {
    mill.notify { url = "hooks.example.org" },
    mill.notify { url = "ftp://hooks.example.org" },
    mill.notify { url = "https://me:key@hooks.example.org" },
    mill.notify { url = key, secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
    mill.notify { url = key, events = { "run.suceeded", "ended" } },
    mill.notify { url = key, events = {} },
    mill.notify { secret = key },
    mill.notify { url = 7 },
    "https://hooks.example.org",
  },
  on_success = mill.notify { url = key, events = { "run.queued" } },
  on_failure = key,
}
