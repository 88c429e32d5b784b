/** The health check for Argo CD that the guide ships, carried out by Lua 5.1, the version of Argo CD. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const lua = ['lua5.1', 'luajit'].find((program) => spawnSync(program, ['-v']).status === 0)

/** Why it cannot be carried out here, for `{ skip }`; false when it can. */
export const luaMissing: string | false =
  lua === undefined ? 'neither lua5.1 nor luajit is on this machine: the health check was NOT run' : false

/** What the check looks at. */
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
