/** Methods of lists and dicts. Source: Starlark specification, "Built-in methods". */
import { asInt, failure, positional, type Methods } from './arguments.ts'
import { update } from './conversion.ts'
import { indexIn } from './sequence.ts'
import { type Dict, List, Tuple } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { elementsOf } from '../values/iterate.ts'
import { sizeOf } from '../vm/meter.ts'
import { bounds, checkRange } from '../values/subscript.ts'

export const listMethods: Methods<List> = {
  append(list, call) {
    const [value = null] = positional(call, 1, 1)
    call.meter.appended(list.items.length)
    list.writable('append to').push(value)
    return null
  },
  clear(list, call) {
    positional(call, 0, 0)
    list.writable('clear').length = 0
    return null
  },
  extend(list, call) {
    const items = elementsOf(positional(call, 1, 1)[0] ?? null, call.meter, 'extend: for parameter 1')
    const own = list.writable('extend')
    for (const item of items) own.push(item)
    return null
  },
  index(list, call) {
    const [value = null, start = null, end = null] = positional(call, 1, 3)
    const [from, to] = bounds(start, end, 1, list.items.length)
    return indexIn(list, value, from, to, call)
  },
  insert(list, call) {
    const [index, value = null] = positional(call, 2, 2)
    const given = asInt(call, index, 'index')
    const { length } = list.items
    const at = Math.min(Math.max(given < 0 ? given + length : given, 0), length)
    call.meter.allocate(sizeOf.element)
    call.meter.step(Math.floor(length / 64))
    list.writable('insert into').splice(at, 0, value)
    return null
  },
  pop(list, call) {
    const [index = -1] = positional(call, 0, 1)
    const at = checkRange('list', asInt(call, index, '1'), list.items.length, 'pop: ')
    const items = list.writable('pop from')
    call.meter.step(Math.floor((items.length - at) / 64))
    return items.splice(at, 1)[0] ?? null
  },
  remove(list, call) {
    const [value = null] = positional(call, 1, 1)
    const items = list.writable('remove from')
    let at: number
    try {
      at = indexIn(list, value, 0, items.length, call)
    } catch (error) {
      if (error instanceof StarlarkError && error.message.endsWith('value not in list'))
        throw failure(call, 'element not found')
      throw error
    }
    items.splice(at, 1)
    return null
  },
}

export const dictMethods: Methods<Dict> = {
  clear(dict, call) {
    positional(call, 0, 0)
    dict.clear()
    return null
  },
  get(dict, call) {
    const [key = null, fallback = null] = positional(call, 1, 2)
    return dict.get(key, call.meter) ?? fallback
  },
  items(dict, call) {
    positional(call, 0, 0)
    call.meter.elements(dict.size * 3)
    return new List([...dict.entries()].map(([key, value]) => new Tuple([key, value])))
  },
  keys(dict, call) {
    positional(call, 0, 0)
    call.meter.elements(dict.size)
    return new List([...dict.keys()])
  },
  pop(dict, call) {
    const [key = null, fallback] = positional(call, 1, 2)
    const found = dict.get(key, call.meter)
    if (found !== undefined) {
      dict.delete(key, call.meter)
      return found
    }
    if (fallback === undefined) throw failure(call, 'missing key')
    return fallback
  },
  popitem(dict, call) {
    positional(call, 0, 0)
    const entry = dict.shift()
    if (!entry) throw failure(call, 'empty dict')
    return new Tuple(entry)
  },
  setdefault(dict, call) {
    const [key = null, fallback = null] = positional(call, 1, 2)
    const found = dict.get(key, call.meter)
    if (found !== undefined) return found
    dict.set(key, fallback, call.meter)
    return fallback
  },
  update(dict, call) {
    if (call.args.length > 1) throw failure(call, `got ${call.args.length} arguments, want at most 1`)
    update(call, dict, call.args[0])
    return null
  },
  values(dict, call) {
    positional(call, 0, 0)
    call.meter.elements(dict.size)
    return new List([...dict.values()])
  },
}
