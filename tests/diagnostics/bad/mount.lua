local mill = require "tidemill"

return mill.workflow {
  name   = "mount",
  image  = mill.image "debian:bookworm",
  mounts = { "/ref" },
  agent  = { model = "m" },
  prompt = "Look at /ref.",
}
