local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

while true do
  pcall(function() while true do end end)
end
