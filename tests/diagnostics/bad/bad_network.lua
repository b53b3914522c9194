local mill = require "tidemill"

return mill.workflow {
  name = "bad-network",
  image = mill.image { build = "images/python-data" },
  agent = { model = "tide" },
  prompt = "x",
  network = {
    allow = {
      "*",
      "https://api.example.com/v1",
      "10.0.0.1:8080",
      "::1",
      "api.example.com:0",
      "*.com",
      "api_example,com",
      42,
    },
    alow = { "x.example.com" },
    secrets = {
      TOKEN = mill.secret "SHOP_TOKEN",
      ["A-B"] = mill.secret("SHOP_TOKEN", { host = "api.example.com" }),
      WILD = mill.secret("SHOP_TOKEN", { host = "*.example.com", path = "v1", methods = { "get" } }),
    },
  },
}
