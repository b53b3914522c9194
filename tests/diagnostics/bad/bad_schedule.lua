local mill = require "tidemill"

return mill.workflow {
  name = "bad",
  image = mill.image "alpine:3",
  agent = { model = "tide" },
  prompt = "Count the rows.",
  triggers = {
    mill.schedule { cron = "0 0 30 2 *" },
    mill.schedule { cron = "0 6 * *" },
    mill.schedule { cron = "0 25 * * *" },
    mill.schedule { cron = "0 6 * * FUNDAY" },
    mill.schedule { cron = "0 6 * * MON", timezone = "Europe/Zürich" },
    mill.schedule { cron = "0 6 * * MON", timezone = "new york" },
    mill.schedule { cron = "0 6 * * MON", every = "1h" },
    mill.schedule { timezone = "UTC" },
    mill.schedule { every = "0s" },
    mill.schedule { at = { "2026-12-24 18:00", "tomorrow", "2026-12-24T18:00:00+01:00" } },
    mill.schedule { every = "1h", missed = "newest", overlap = "skipp", jitter = "some" },
    mill.schedule { crn = "0 6 * * MON" },
    mill.schedule { every = "10m", jitter = "15m" },
    mill.schedule { cron = "0 6 * * MON", jitter = "1h", start_deadline = "30m" },
    "0 6 * * MON",
  },
}
