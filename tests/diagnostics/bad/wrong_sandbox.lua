local mill = require "tidemill"

return mill.workflow {
  name = "wrong-sandbox",
  image = mill.image "python:3.12-slim",
  sandbox = "local",
  network = { allow = { "api.example.com" } },
  agent = { model = "analyst", instructions = "Work." },
  prompt = "Do it.",
}
