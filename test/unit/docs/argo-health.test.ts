/** The health check for Argo CD in the guide, carried out by Lua 5.1 on the status of every recorded case of the hooks. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'

const lua = ['lua5.1', 'luajit'].find((program) => spawnSync(program, ['-v']).status === 0)
const skip =
  lua === undefined ? 'neither lua5.1 nor luajit is on this machine: the health check was NOT run' : false

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}
interface Shown {
  readonly metadata: { readonly generation?: number }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
}

function script(): string {
  const page = readFileSync('docs/guides/gitops.md', 'utf8')
  const [, yaml = ''] = /```yaml\n(data:\n {2}resource\.customizations[^]*?)```/.exec(page) ?? []
  const { data } = parse(yaml) as { data: Record<string, string> }
  const kinds = parse(data['resource.customizations'] ?? '') as Record<string, Record<string, string>>
  return kinds['gatehouse.dev/*']?.['health.lua'] ?? ''
}

/** A value as Lua writes it. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'nil'
  if (Array.isArray(value)) return `{${value.map(literal).join(',')}}`
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, member]) => `[${literal(key)}]=${literal(member)}`)
      .join(',')}}`
  if (typeof value !== 'string') return JSON.stringify(value)
  const bytes = [...Buffer.from(value)].map((byte) => `\\${String(byte).padStart(3, '0')}`)
  return `"${bytes.join('')}"`
}

/** The health of each object. The script gets what Argo CD gives it without open libraries, and nothing more. */
function healthOf(objects: readonly Shown[]): readonly string[] {
  const program = `
local check = assert(loadstring(${literal(script())}))
for _, obj in ipairs({${objects.map(literal).join(',\n')}}) do
  setfenv(check, { obj = obj, ipairs = ipairs })
  local health = check()
  assert(health.message == nil or type(health.message) == "string")
  print(health.status)
end`
  const { status, stdout, stderr } = spawnSync(lua ?? '', ['-'], { input: program, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim().split('\n')
}

/** The rule of the guide, in other words: the worst that any condition says. */
function expected({ metadata, status }: Shown): string {
  if (!status || status.observedGeneration !== metadata.generation) return 'Progressing'
  const value = (type: string) => status.conditions?.find((one) => one.type === type)?.status
  if (value('Stalled') === 'True') return 'Degraded'
  const isDone = value('Reconciling') !== 'True' && ['True', undefined].includes(value('Ready'))
  return isDone ? 'Healthy' : 'Progressing'
}

t.test('Argo CD: the health of every recorded status', { skip }, async (t) => {
  const cases = globSync('test/hooks/*/*/response.json').flatMap((file) => {
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    const { parent } = read(join(file, '../request.json')) as { parent?: Shown }
    const { status } = read(file) as Pick<Shown, 'status'>
    return parent && status ? [{ file, obj: { metadata: parent.metadata, status } }] : []
  })
  t.ok(cases.length > 100, `${cases.length} cases`)
  const found = healthOf(cases.map(({ obj }) => obj))
  t.same(
    found.map((health, index) => `${cases[index]?.file} ${health}`),
    cases.map(({ file, obj }) => `${file} ${expected(obj)}`),
  )
  t.same([...new Set(found)].sort(), ['Degraded', 'Healthy', 'Progressing'])
})

t.test('Argo CD: what is not done yet is not healthy', { skip }, async (t) => {
  const metadata = { generation: 2 }
  const ready = { type: 'Ready', status: 'True' }
  const stalled = { type: 'Stalled', status: 'True', message: 'a "Secret" is\nmissing' }
  t.same(
    healthOf([
      { metadata },
      { metadata, status: { observedGeneration: 1, conditions: [ready] } },
      { metadata, status: { observedGeneration: 2, conditions: [ready] } },
      { metadata, status: { observedGeneration: 2, conditions: [ready, stalled] } },
      { metadata, status: { observedGeneration: 2 } },
    ]),
    ['Progressing', 'Progressing', 'Healthy', 'Degraded', 'Healthy'],
  )
})
