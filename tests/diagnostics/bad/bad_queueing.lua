local mill = require "tidemill"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  priority = 1.5,
  concurrency = 0,
  retry = { attempts = 0, backoff = "1h", max_backoff = "10s", tries = 3 },
}
