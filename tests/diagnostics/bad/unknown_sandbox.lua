local mill = require "tidemill"

return mill.workflow {
  name = "unknown-sandbox",
  sandbox = "dokcer",
  agent = { model = "analyst", instructions = "Work." },
  prompt = "Do it.",
}
