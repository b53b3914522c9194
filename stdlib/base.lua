-- What scripts get of Lua's base library, made safe. `stop` raises an error again that no script may swallow:
-- a reached limit, and memory that ran out.
local stop, refuse, absent = ...

local pcall, resume, close = pcall, coroutine.resume, coroutine.close
local pack, unpack = table.pack, table.unpack
local setmetatable, rawget = setmetatable, rawget

function _G.pcall(...) return stop(pcall(...)) end
function coroutine.resume(...) return stop(resume(...)) end
function coroutine.close(...) return stop(close(...)) end

-- Lua calls the handler before it leaves the place of the error. A limit is noticed in a hook, and in a hook no limit
-- is looked at; so the handler is called afterwards.
function _G.xpcall(call, handler, ...)
  local results = pack(stop(pcall(call, ...)))
  if results[1] then return unpack(results, 1, results.n) end
  return false, select(2, stop(pcall(handler, results[2])))
end

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
