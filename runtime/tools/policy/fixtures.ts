/** Reads policy tests and reports all of their mistakes together. */
import {
  type Fields,
  formatViolations,
  GatehouseError,
  isFields,
  type Violation,
} from '../../../schemas/index.ts'
import { tokenFacts } from '../../../schemas/cedar/index.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { type Manifest, readManifests } from '../../toolkit/manifests/read.ts'
import type { PolicyQuestion, PolicyTest } from '../../policy/index.ts'

export interface Fixtures {
  readonly file: string
  /** Path of the policies, relative to the test file. */
  readonly policies: string | undefined
  readonly tests: readonly PolicyTest[]
}

/** The caller that a test defines. */
type TestCaller = Pick<PolicyQuestion, 'claims' | 'principal'>

const actions = { tool: 'call_tool', prompt: 'get_prompt', resource: 'read_resource' } as const
type Kind = keyof typeof actions

const hintNames = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint', 'appOnly']

/** Throws INVALID_CONFIG, which lists every mistake with its file and line. */
export function readFixtures(paths: readonly string[]): readonly Fixtures[] {
  const manifests = readManifests(paths, () => standardText('-f'))
  const read = manifests.map((manifest) => readFixture(manifest))
  const mistakes = read.flatMap(({ violations, file }, index) =>
    violations.map(
      (violation) => `${file}:${manifests[index]?.lineOf(violation.path)}: ${formatViolations([violation])}`,
    ),
  )
  if (mistakes.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: mistakes.join('\n') })
  return read
}

function readFixture({ doc, file }: Manifest): Fixtures & { readonly violations: readonly Violation[] } {
  const reader = new Reader()
  reader.only(doc, ['policies', 'tests'], '')
  const { policies, tests } = doc
  if (!Array.isArray(tests) || tests.length === 0)
    reader.wrong('tests', 'must be a list of at least one test')
  const list: readonly unknown[] = Array.isArray(tests) ? tests : []
  return {
    file,
    policies: reader.text(policies, 'policies'),
    tests: list.flatMap((test, index) => reader.test(test, `tests[${index}]`) ?? []),
    violations: reader.violations,
  }
}

class Reader {
  readonly violations: Violation[] = []

  wrong(path: string, message: string): undefined {
    this.violations.push({ path, message })
    return undefined
  }

  only(fields: Fields, known: readonly string[], path: string): void {
    for (const name of Object.keys(fields)) {
      if (!known.includes(name))
        this.wrong(
          `${path}${path === '' ? '' : '.'}${name}`,
          `unknown field; expected one of ${known.join(', ')}`,
        )
    }
  }

  text(value: unknown, path: string): string | undefined {
    return value === undefined || typeof value === 'string' ? value : this.wrong(path, 'must be a string')
  }

  texts(value: unknown, path: string): string[] {
    if (value === undefined) return []
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    this.wrong(path, 'must be a list of strings')
    return []
  }

  fields(value: unknown, path: string): Fields {
    if (value === undefined || isFields(value)) return value ?? {}
    this.wrong(path, 'must be an object')
    return {}
  }

  test(value: unknown, path: string): PolicyTest | undefined {
    if (!isFields(value)) return this.wrong(path, 'must be an object')
    this.only(value, ['name', 'claims', 'principal', 'call', 'list', 'expect', 'because', 'errors'], path)
    const { name, claims, principal, call, list, expect, because, errors } = value
    const caller = { claims: this.fields(claims, `${path}.claims`), principal: this.#facts(principal, path) }
    if (typeof name !== 'string') this.wrong(`${path}.name`, 'must be a string')
    if ((call === undefined) === (list === undefined)) return this.wrong(path, 'requires either call or list')
    const named = typeof name === 'string' ? name : path
    if (list !== undefined) return { name: named, questions: this.#list(list, caller, `${path}.list`) }
    const question = this.#item(call, caller, `${path}.call`)
    if (expect !== 'allow' && expect !== 'deny') this.wrong(`${path}.expect`, 'must be allow or deny')
    if (errors !== undefined && !(Number.isInteger(errors) && Number(errors) >= 0))
      this.wrong(`${path}.errors`, 'must be a whole number: the number of policies that fail')
    const expected = {
      expect: expect === 'deny' ? ('deny' as const) : ('allow' as const),
      because: this.texts(because, `${path}.because`),
      ...(errors === undefined ? {} : { errors: Number(errors) }),
    }
    return { name: named, questions: question ? [{ question, ...expected }] : [] }
  }

  /** Reads facts about the caller's token. These facts replace those derived from the token's claims. */
  #facts(value: unknown, path: string): Fields {
    const facts = this.fields(value, `${path}.principal`)
    this.only(facts, tokenFacts, `${path}.principal`)
    for (const [name, fact] of Object.entries(facts))
      if (typeof fact !== 'string') this.wrong(`${path}.principal.${name}`, 'must be a string')
    const { kind } = facts
    if (kind !== undefined && kind !== 'user' && kind !== 'machine')
      this.wrong(`${path}.principal.kind`, 'must be user or machine')
    return facts
  }

  #list(value: unknown, caller: TestCaller, path: string): PolicyTest['questions'] {
    const list = this.fields(value, path)
    this.only(list, ['visible', 'hidden'], path)
    const questionsOf = (member: 'visible' | 'hidden', expect: 'allow' | 'deny') => {
      const items: unknown = list[member] ?? []
      if (!Array.isArray(items)) {
        this.wrong(`${path}.${member}`, 'must be a list')
        return []
      }
      return items.flatMap((item: unknown, index) => {
        const named = typeof item === 'string' ? { tool: item } : item
        const question = this.#item(named, caller, `${path}.${member}[${index}]`)
        return question ? [{ question, expect }] : []
      })
    }
    return [...questionsOf('visible', 'allow'), ...questionsOf('hidden', 'deny')]
  }

  #item(value: unknown, caller: TestCaller, path: string): PolicyQuestion | undefined {
    const item = this.fields(value, path)
    this.only(item, [...Object.keys(actions), 'backend', 'original', 'arguments', 'hints'], path)
    const kinds = (Object.keys(actions) as Kind[]).filter((kind) => item[kind] !== undefined)
    const [kind] = kinds
    if (!kind || kinds.length > 1) return this.wrong(path, 'requires one of tool, prompt and resource')
    const id = this.text(item[kind], `${path}.${kind}`)
    const backend = this.text(item['backend'], `${path}.backend`)
    const original = this.text(item['original'], `${path}.original`)
    if (original !== undefined && backend === undefined)
      this.wrong(`${path}.backend`, 'is required when original is set; leave it empty for a workflow')
    const hints = this.fields(item['hints'], `${path}.hints`)
    this.only(hints, hintNames, `${path}.hints`)
    for (const [name, hint] of Object.entries(hints))
      if (typeof hint !== 'boolean') this.wrong(`${path}.hints.${name}`, 'must be true or false')
    if (item['arguments'] !== undefined) this.fields(item['arguments'], `${path}.arguments`)
    return {
      action: actions[kind],
      id: id ?? '',
      ...caller,
      arguments: item['arguments'],
      hints,
      ...(backend === undefined ? {} : { origin: { backend, original: original ?? id ?? '' } }),
    }
  }
}
