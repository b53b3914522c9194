local mill = require "tidemill"
local key = mill.secret "SHOP_SECRET"

return mill.workflow {
  name = "bad",
  sandbox = "none",
  agent = { model = "tide" },
  prompt = "Decide.",
  triggers = {
    mill.webhook { path = "/Refunds", secret = key },
    mill.webhook { path = "a", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
    mill.webhook { path = "b", secret = {} },
    mill.webhook { path = "c", secret = { key, "sk-123456789" } },
    mill.webhook { path = "d", secret = key, scheme = "gitub" },
    mill.webhook { path = "e", secret = key, scheme = "basic" },
    mill.webhook { path = "f", secret = key, scheme = { hmac = "X Signature" } },
    mill.webhook { path = "g", secret = key, max_body = "1GB" },
    mill.webhook { path = "h", secret = key, rate = 0 },
    mill.webhook { path = "i", secrt = key },
    mill.webhook { secret = key },
    mill.webhook { path = "j", secret = key },
    mill.webhook { path = "j", secret = key },
  },
}
