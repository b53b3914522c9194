-- Every way to say what commands run in.
local mill = require "tidemill"

local digest = "python@sha256:" .. ("a"):rep(64)
local ways = {
  mill.image "python:3.12-slim",
  mill.image(digest),
  mill.image { from = "python:3.12-slim", packages = { apt = { "jq" }, python = { "pandas==2.2.3" } } },
  mill.image { from = "ghcr.io/team/tool:1", platform = "linux/amd64", pull = "always" },
}

return mill.workflow {
  name   = "images",
  image  = mill.image {
    build    = "images/python-data",
    target   = "work",
    args     = { VERSION = "1" },
    secrets  = { pip = mill.secret "PIP_TOKEN" },
    platform = "linux/amd64",
    pull     = "missing",
    packages = { python = { "uvicorn[standard]>=0.30,<1" } },
  },
  agent  = { model = "tide" },
  prompt = ("%d ways"):format(#ways),
}
