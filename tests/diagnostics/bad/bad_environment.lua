local mill = require "tidemill"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  environment = {
    ["A-B"] = "x",
    ["2ND"] = "x",
    LD_PRELOAD = "/workspace/evil.so",
    TIDEMILL_RUN = "x",
    TOKEN = mill.secret "SHOP_TOKEN",
    ROWS = 12,
    NUL = "a\0b",
    LONG = string.rep("x", 40000),
    GOOD = "x",
  },
}
