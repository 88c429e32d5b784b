/** Runs the health check for Argo CD from the guide with Lua 5.1, the version that Argo CD uses. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const lua = ['lua5.1', 'luajit'].find((program) => spawnSync(program, ['-v']).status === 0)

/** Reason that the check cannot run on this machine, for `{ skip }`; otherwise false. */
export const luaMissing: string | false =
  lua === undefined ? 'neither lua5.1 nor luajit is on this machine: the health check was NOT run' : false

/** The parts of an object that the check reads. */
export interface Checked {
  readonly metadata: { readonly generation?: number }
  readonly status?: unknown
}

function script(): string {
  const page = readFileSync('docs/guides/gitops.md', 'utf8')
  const [, yaml = ''] = /```yaml\n(data:\n {2}resource\.customizations[^]*?)```/.exec(page) ?? []
  const { data } = parse(yaml) as { data: Record<string, string> }
  const kinds = parse(data['resource.customizations'] ?? '') as Record<string, Record<string, string>>
  return kinds['gatehouse.dev/*']?.['health.lua'] ?? ''
}

/** Returns a value as a Lua literal. */
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

/** Returns the health of each object. The script gets the environment of Argo CD without open libraries. */
export function healthOf(objects: readonly Checked[]): readonly string[] {
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
