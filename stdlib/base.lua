-- What scripts get of Lua's base library, made safe. `stop` raises an error again that no script may swallow:
-- a reached limit, and memory that ran out.
local stop, refuse, absent = ...

local pcall, xpcall, resume, close = pcall, xpcall, coroutine.resume, coroutine.close
local setmetatable, rawget = setmetatable, rawget

function _G.pcall(...) return stop(pcall(...)) end
function _G.xpcall(...) return stop(xpcall(...)) end
function coroutine.resume(...) return stop(resume(...)) end
function coroutine.close(...) return stop(close(...)) end

-- A finalizer runs where no limit is looked at.
function _G.setmetatable(object, metatable)
  if metatable and rawget(metatable, "__gc") ~= nil then refuse("__gc") end
  return setmetatable(object, metatable)
end

-- A name that other Lua hosts have gets an answer instead of `nil`.
setmetatable(_G, {
  __index = function(_, name)
    if absent[name] then refuse(name) end
  end,
  __metatable = false,
})
