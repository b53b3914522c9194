local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local rows = nil

local function count()
  return #rows.all
end

return mill.workflow { name = "bad", prompt = "rows: " .. count() }
