local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local prompt = "count the rows
return mill.workflow { prompt = prompt }
