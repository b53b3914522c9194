local mill = require "tidemill"

local both = mill.image { build = "images/python-data", from = "python:3.12-slim" }
local none = mill.image { packages = { apt = { "jq" } } }
local misspelt = mill.image { build = "images/python-data", arguments = {}, taget = "test" }
local without_folder = mill.image { from = "python:3.12-slim", target = "test" }
local folder_as_tag = mill.image "images/python-data"
local capital = mill.image "Python:3.12"
local short_digest = mill.image "python@sha256:abc"
local sideways = mill.image { from = "alpine:3", platform = "arm64", pull = "allways" }

return mill.workflow {
  name  = "bad-image",
  image = mill.image {
    build    = "images/python-data",
    target   = "no such",
    args     = { ["MY-ARG"] = "1", TOKEN = mill.secret "PIP_TOKEN", N = 5 },
    secrets  = { pip = "hunter2", ["a b"] = mill.secret "X" },
    packages = {
      apt    = { "jq; rm -rf /", "JQ" },
      python = { "pandas == 2", "--index-url=https://evil.example", "git+https://x" },
      npm    = { "left-pad" },
    },
  },
  agent  = { model = "tide" },
  prompt = "x",
}
