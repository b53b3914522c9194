local mill   = require "tidemill"
local expect = require "tidemill.expect"
local guard  = require "tidemill.guard"

local token = mill.secret "SHOP_TOKEN"
local prompt = "use " .. token
