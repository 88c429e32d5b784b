/** Implements `text.format(...)`. Source: Starlark specification, "string·format". */
import { failure } from './arguments.ts'
import type { NativeCall, StarlarkValue } from '../values/values.ts'
import { repr, str } from '../values/print.ts'
import { decode } from '../values/text.ts'

interface State {
  /** Index of the next field that has neither a name nor a number. */
  next: number
  manual: boolean
}

export function format(text: string, call: NativeCall): string {
  const state: State = { next: 0, manual: false }
  const parts: string[] = []
  let at = 0
  while (at < text.length) {
    const brace = nextBrace(text, at)
    parts.push(text.slice(at, brace))
    if (brace === text.length) break
    const char = text[brace]
    if (text[brace + 1] === char) {
      parts.push(char ?? '')
      at = brace + 2
    } else if (char === '}') throw failure(call, "single '}' in format")
    else {
      const end = text.indexOf('}', brace)
      if (end < 0) throw failure(call, "unmatched '{' in format")
      call.meter.step(1)
      const part = field(text.slice(brace + 1, end), call, state)
      call.meter.text(part.length)
      parts.push(part)
      at = end + 1
    }
  }
  const whole = parts.join('')
  call.meter.text(whole.length)
  return whole
}

function nextBrace(text: string, from: number): number {
  const found = /[{}]/g
  found.lastIndex = from
  return found.exec(text)?.index ?? text.length
}

function field(inner: string, call: NativeCall, state: State): string {
  if (inner.includes('{')) throw failure(call, 'nested replacement fields not supported')
  const mark = inner.indexOf('!')
  const [name, conversion] = mark < 0 ? [inner, 's'] : [inner.slice(0, mark), inner.slice(mark + 1)]
  const value = valueOf(name, call, state)
  switch (conversion) {
    case 's':
      return str(value, call.meter)
    case 'r':
      return repr(value, call.meter)
    default:
      throw failure(call, `unknown conversion ${JSON.stringify(decode(conversion))}`)
  }
}

function valueOf(name: string, call: NativeCall, state: State): StarlarkValue {
  if (name.includes(':'))
    throw failure(call, `format spec features not supported in replacement fields: ${decode(name)}`)
  if (name === '') {
    if (state.manual)
      throw failure(call, 'cannot switch from manual field specification to automatic field numbering')
    return argument(state.next++, call)
  }
  if (/^\d+$/.test(name)) {
    if (state.next > 0)
      throw failure(call, 'cannot switch from automatic field numbering to manual field specification')
    state.manual = true
    return argument(Number(name), call)
  }
  const found = call.named.find(([key]) => key === name)
  if (found) return found[1]
  if (name.includes('.'))
    throw failure(call, `attribute syntax x.y is not supported in replacement fields: ${name}`)
  if (name.includes('['))
    throw failure(call, `element syntax a[i] is not supported in replacement fields: ${name}`)
  throw failure(call, `keyword ${name} not found`)
}

function argument(index: number, call: NativeCall): StarlarkValue {
  const value = call.args[index]
  if (value === undefined) throw failure(call, 'tuple index out of range')
  return value
}
