/** The machine: waits and parallel tasks, one shared meter, the order of logs, and the names passed to scripts. */
import t from 'tap'
import {
  Builtin,
  compile,
  decode,
  Dict,
  elementsOf,
  encode,
  execute,
  JsonTextError,
  LimitError,
  List,
  ScriptMeter,
  readJson,
  StarlarkError,
  universalNames,
  type StarlarkValue,
  type ScriptWork,
  writeJson,
} from '../../../runtime/expr/starlark/index.ts'
import { asText } from '../../../runtime/expr/starlark/builtins/arguments.ts'
import { repr } from '../../../runtime/expr/starlark/values/print.ts'
import type { SchedulerOptions } from '../../../runtime/expr/starlark/vm/scheduler.ts'

const LIMITS = { maxSteps: 100_000, maxBytes: 16 * 1024 * 1024 }

/** A host that responds when the test tells it to. */
class Outside {
  readonly open: {
    readonly name: string
    settle(value: StarlarkValue): void
    fail(message: string): void
  }[] = []
  most = 0

  readonly wait = new Builtin('wait', (call) => this.#wait(asText(call, call.args[0], 'name')));

  *#wait(name: string): ScriptWork {
    const response: StarlarkValue = yield {
      kind: 'wait',
      begin: (settle) => {
        this.open.push({
          name,
          settle: (value) => settle({ value }),
          fail: (message) => settle({ error: new StarlarkError(message) }),
        })
        this.most = Math.max(this.most, this.open.length)
      },
    }
    return response
  }

  /** Responds to all waiting requests in reverse order, each with its own name. */
  answerAll(): void {
    for (let next = this.open.pop(); next; next = this.open.pop()) next.settle(next.name)
  }
}

const parallel = new Builtin('parallel', function* ({ args, meter }) {
  return yield { kind: 'parallel', callables: elementsOf(args[0] ?? null, meter, 'parallel') }
})

interface Started {
  readonly outside: Outside
  readonly meter: ScriptMeter
  readonly logs: { readonly line: string; readonly path: readonly number[] }[]
  readonly result: Promise<string>
}

function start(
  script: string,
  more: Partial<SchedulerOptions> & { readonly given?: Readonly<Record<string, StarlarkValue>> } = {},
): Started {
  const outside = new Outside()
  const meter = new ScriptMeter({ ...LIMITS, ...more })
  const logs: Started['logs'] = []
  const globals = new Map<string, StarlarkValue>([
    ['wait', outside.wait],
    ['parallel', parallel],
    ...Object.entries(more.given ?? {}),
  ])
  const program = compile(script, new Set([...universalNames.keys(), ...globals.keys()]))
  const options = {
    ...LIMITS,
    maxWaits: 3,
    globals,
    print: (line: string, path: readonly number[]) => void logs.push({ line, path }),
    ...more,
  }
  const result = execute(program, options, meter).then((value) => decode(repr(value, meter)))
  result.catch(() => {})
  return { outside, meter, logs, result }
}

/** Returns the error of the work, or undefined. */
async function errorOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work()
    return undefined
  } catch (error) {
    return error
  }
}

t.test('wait: the machine pauses inside an expression and continues with the response', async (t) => {
  const { outside, result } = start(
    'def f(x): return [wait(x) + "!"]\nreturn {"a": f("one"), "b": wait("two")}',
  )
  t.same(
    outside.open.map(({ name }) => name),
    ['one'],
  )
  outside.answerAll()
  outside.answerAll()
  t.equal(await result, '{"a": ["one!"], "b": "two"}')
})

t.test('wait: a failure ends the script at the waiting call', async (t) => {
  const { outside, result } = start('x = 1\ny = wait("it")\nreturn x')
  outside.open.pop()?.fail('no luck')
  const error: unknown = await result.catch((failure: unknown) => failure)
  t.ok(error instanceof StarlarkError)
  t.equal(error instanceof StarlarkError && error.describe('s'), 's:2:9: no luck')
})

t.test('wait: a key function may wait, too', async (t) => {
  const { outside, result } = start('return sorted(["b", "a", "c"], key=lambda x: wait(x))')
  for (let i = 0; i < 3; i++) outside.answerAll()
  t.equal(await result, '["a", "b", "c"]')
})

t.test('parallel: returns the results in the order of the list, whichever task ends first', async (t) => {
  const { outside, result } = start('return parallel([lambda n=n: wait(n) for n in ["a", "b", "c"]])')
  t.equal(outside.open.length, 3)
  outside.answerAll()
  t.equal(await result, '["a", "b", "c"]')
})

t.test('parallel: the limit on concurrent waits includes nested tasks', async (t) => {
  const { outside, result } = start(
    'def inner(): return parallel([lambda: wait("x"), lambda: wait("y")])\nreturn len(parallel([inner for _ in range(7)]))',
  )
  while (outside.open.length > 0) outside.open.shift()?.settle(1)
  t.equal(await result, '7')
  t.equal(outside.most, 3)
})

t.test('parallel: all tasks run to their end, then the first failure in the list is raised', async (t) => {
  const { outside, result, logs } = start(
    'def go(n):\n  r = wait(n)\n  print(n)\n  if r == "bad": fail(n)\nparallel([lambda: go("a"), lambda: go("b"), lambda: go("c")])',
  )
  const [a, b, c] = outside.open.splice(0)
  c?.settle('bad')
  b?.settle('bad')
  a?.settle('good')
  await t.rejects(result, { message: 'parallel: task 1 failed: fail: b' })
  t.equal(logs.length, 3)
})

t.test('parallel: built-in functions, empty lists and failures before any wait', async (t) => {
  t.equal(await start('return parallel([])').result, '[]')
  t.equal(await start('return parallel([dict, list, lambda: 5])').result, '[{}, [], 5]')
  await t.rejects(start('parallel([lambda x: x])').result, {
    message: /task 0 failed: function lambda missing 1/,
  })
})

t.test('parallel: a recursive call through it is rejected', async (t) => {
  await t.rejects(start('def f(): return parallel([f])\nf()').result, { message: /called recursively/ })
})

t.test('steps: a script and its parallel tasks share one budget', async (t) => {
  const loop = 'def spin():\n  for i in range(2000): pass\n'
  const alone = start(`${loop}spin()\nreturn 1`)
  await alone.result
  const four = start(`${loop}parallel([spin, spin, spin, spin])\nreturn 1`, {
    maxSteps: alone.meter.steps * 3,
  })
  await t.rejects(four.result, LimitError)
  await t.rejects(four.result, { message: 'Starlark computation cancelled: too many steps' })
})

t.test('steps: exceeding the budget ends the script without awaiting open calls', async (t) => {
  const { outside, result } = start(
    'def spin():\n  for i in range(1 << 30): pass\nparallel([lambda: wait("long"), spin])',
  )
  await t.rejects(result, { message: 'Starlark computation cancelled: too many steps' })
  t.equal(outside.open.length, 1, 'the call stays open')
  outside.answerAll()
})

t.test('steps: built-in functions count every element', async (t) => {
  const costs = [
    'list(range(50000))',
    'sorted(range(50000))',
    '[0] * 50000',
    'dict([(i, i) for i in range(9000)])',
    'max(range(50000))',
    'list(("x" * 50000).elems())',
    'zip(range(50000), range(50000))',
    'enumerate(range(50000))',
    '"a,".replace("a", "b" * 10) * 5000000',
    '("a" * 4000000).count("a" * 2000)',
  ]
  for (const cost of costs)
    await t.rejects(start(`x = ${cost}`, { maxSteps: 20_000 }).result, LimitError, cost)
})

t.test('steps and memory: building a text line by line costs about as much as its lines', async (t) => {
  const line = '"%d: a line of a report, as long as such lines usually are, in a report\\n" % i'
  for (const add of [`text += ${line}`, `text = text + ${line}`, `text = ${line} + text`]) {
    const { meter, result } = start(`text = ""\nfor i in range(1500): ${add}\nreturn len(text)`, {
      maxSteps: 100_000,
      maxBytes: 64 * 1024 * 1024,
    })
    t.equal(await result, '108390')
    t.ok(meter.steps < 50_000 && meter.bytes < 4 * 1024 * 1024, `${meter.steps} steps, ${meter.bytes} bytes`)
  }
})

t.test('memory: everything that grows is counted', async (t) => {
  const bombs = [
    'x = "a"\nfor i in range(64): x = x + x',
    'x = [0]\nfor i in range(64): x = x + x',
    'x = [0]\nfor i in range(64): x += x',
    'x = [0]\nfor i in range(64): x.extend(x)',
    'x = (0,)\nfor i in range(64): x = x + x',
    'x = b"a"\nfor i in range(64): x = x + x',
    'x = "a" * 4000000\ny = []\nfor i in range(100000):\n  y.append(x + str(i))\n  y[i][0]',
    'x = "a" * 1000000000',
    'x = [0] * 1000000000',
    'x = {i: i for i in range(1000000000)}',
    'x = ["%s" % ("a" * 100000) for i in range(1000000)]',
    'x = "a" * 1000\nfor i in range(1000): x = x.replace("a", "aa")',
    'x = ["a" * 1000000]\nfor i in range(100): x = [",".join(x + x)]',
    'x = [1]\nfor i in range(100): x = [x, x]\ny = str(x)',
    'x = 1\nfor i in range(100000): x = x * 3 + x * x',
    'x = (1,)\nfor i in range(90): x = (x, x)\nd = {x: 1}',
    'x = "{}{}"\nfor i in range(64): x = x.format(x, x)',
    'def f(**kw): return kw\nx = [f(**{str(i): i for i in range(1000)}) for j in range(100000)]',
  ]
  for (const bomb of bombs) {
    const { result } = start(bomb, { maxSteps: 1e9 })
    t.ok((await errorOf(() => result)) instanceof StarlarkError, bomb)
  }
})

t.test('depth: nesting in scripts or values cannot crash the host', async (t) => {
  const hostile = [
    `return ${'('.repeat(50_000)}1${')'.repeat(50_000)}`,
    `return ${'['.repeat(5_000)}${']'.repeat(5_000)}`,
    `return ${'-'.repeat(50_000)}1`,
    `return ${'not '.repeat(50_000)}1`,
    `return ${'1 + '.repeat(50_000)}1`,
    `return x${'.a'.repeat(50_000)}`,
    `return ${'lambda: '.repeat(5_000)}1`,
    Array.from({ length: 500 }, (_, i) => `${' '.repeat(i)}if 1:`).join('\n'),
    `return ${'1 if 1 else '.repeat(5_000)}1`,
    `x = [${'{"a": '.repeat(3_000)}`,
    'x = []\nfor i in range(5000): x = [x]\nreturn str(x)',
    'x = []\nfor i in range(5000): x = [x]\nreturn x == x[0]',
    'x = ()\nfor i in range(5000): x = (x,)\nreturn {x: 1}',
    'x = [1, 2]\nx[0] = x\nx[1] = x\nreturn x < x',
  ]
  for (const script of hostile)
    t.ok(
      (await errorOf(() => start(script, { maxSteps: 1e7 }).result)) instanceof StarlarkError,
      script.slice(0, 40),
    )
})

t.test('search: a substring search costs the product of both lengths', async (t) => {
  const script = 'x = "a" * 4000000\ny = "a" * 1000000 + "b"\nreturn x.find(y)'
  await t.rejects(start(script, { maxBytes: 1e9 }).result, LimitError)
})

t.test('given names: a script can read them and assign to them', async (t) => {
  const given = { items: new List([1, 2]), n: 3 }
  t.equal(
    await start('items = [i * n for i in items]\nn += 1\nreturn items, n', { given }).result,
    '([3, 6], 4)',
  )
  t.equal(await start('def f(): return n\nn = n + 1\nreturn f()', { given }).result, '4')
})

t.test('logs: sorted by path, in the order of a sequential run', async (t) => {
  const { outside, logs, result } = start(
    'print("first")\ndef go(n):\n  print(n, 1)\n  wait(n)\n  print(n, 2)\nparallel([lambda: go("a"), lambda: go("b")])\nprint("last")',
  )
  outside.answerAll()
  await result
  const sorted = logs.toSorted((a, b) => {
    const at = a.path.findIndex((step, i) => step !== b.path[i])
    return (a.path[at] ?? 0) - (b.path[at] ?? 0)
  })
  t.same(
    sorted.map(({ line }) => line),
    ['first', 'a 1', 'a 2', 'b 1', 'b 2', 'last'],
  )
})

t.test('errors: the location of the innermost error, and its callers', async (t) => {
  const script = 'def f(x):\n    return 1 // x\n\ndef g():\n    return f(0)\n\nreturn g()'
  const error: unknown = await start(script).result.catch((failure: unknown) => failure)
  t.equal(
    error instanceof StarlarkError && error.describe('script.star'),
    'script.star:2:14: floored division by zero (in f, called from line 5, line 7)',
  )
})

t.test('iteration: a sequence can be changed again after a failed task leaves its loop', async (t) => {
  const script =
    'x = [1]\ndef bad():\n  for i in x: fail("no")\ndef later():\n  wait("a")\n  x.append(2)\nparallel([bad, later])'
  const { outside, result } = start(script)
  outside.answerAll()
  await t.rejects(result, { message: 'parallel: task 0 failed: fail: no' })
})

t.test('JSON: values of every type are encoded and decoded unchanged, including big integers', (t) => {
  const meter = new ScriptMeter(LIMITS)
  const texts = [
    '{"a":[1,-2,2.5,1e+300],"b":{"c":null},"d":true,"e":""}',
    '[12345678901234567890,-9007199254740993]',
    '"é\\n\\u0001\\"\\\\"',
  ]
  for (const text of texts) t.equal(decode(writeJson(readJson(encode(text), meter), meter)), text)
  t.equal(
    decode(repr(readJson(encode('[1.0, 1e2, -0, 0.5, "\\ud83d\\ude00", "\\ud800"]'), meter), meter)),
    '[1, 100, 0, 0.5, "😀", "�"]',
  )
  for (const bad of [
    '',
    '{',
    '[1,]',
    '{"a"}',
    '01',
    '"',
    '"\n"',
    'nul',
    '[1] 2',
    '"\\x"',
    '1e999',
    '['.repeat(500),
  ])
    t.throws(() => readJson(bad, meter), JsonTextError, bad.slice(0, 20))
  t.end()
})

t.test('JSON: values without a JSON form are rejected by name', (t) => {
  const meter = new ScriptMeter(LIMITS)
  const cyclic = new List([])
  cyclic.items.push(cyclic)
  t.throws(() => writeJson(cyclic, meter), { message: /contains itself/ })
  t.throws(() => writeJson(universalNames.get('len') ?? null, meter), {
    message: /builtin_function_or_method to JSON/,
  })
  const dict = new Dict()
  dict.set(1, 2, meter)
  t.throws(() => writeJson(dict, meter), { message: /key of type int.*use str\(key\)/ })
  t.end()
})
