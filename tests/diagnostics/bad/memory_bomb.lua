local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local text = "x"
while true do
  text = text .. text
end
