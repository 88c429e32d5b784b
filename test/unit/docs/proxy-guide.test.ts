/** The flags, variables and paths in the guide of the proxy exist. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { proxyFlags, variables } from '../../../runtime/config/index.ts'
import { CliCommand } from '../../../runtime/toolkit/terminal/command.ts'
import { addTokenCommand } from '../../../runtime/tools/token/command.ts'
import { clientSecretVariable } from '../../../runtime/tools/token/token.ts'

const page = readFileSync('docs/guides/proxy.md', 'utf8')

t.test('guide: every flag in it exists', async (t) => {
  const known = new Set<string>(Object.values(proxyFlags).map(({ flag }) => flag))
  // Flags of related commands, and help itself.
  for (const flag of ['--help', '--login', '--tunnel-provider', '--provider-args', '--target-requires-login'])
    known.add(flag)
  const program = new CliCommand('gatehouse')
  addTokenCommand(program)
  for (const { long } of program.commands[0]?.options ?? []) if (long) known.add(long)
  const named = new Set([...page.matchAll(/--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag))
  t.ok(named.size > 15)
  for (const flag of named)
    t.ok(known.has(flag) || [...known].some((each) => each.startsWith(`${flag}-`)), flag)
})

t.test('guide: every variable in it exists', async (t) => {
  const known = [clientSecretVariable, ...Object.values(variables).map(({ name }) => name)]
  const named = new Set([...page.matchAll(/GATEHOUSE_[A-Z_]+/g)].map(([name]) => name))
  t.ok(named.size > 5)
  for (const name of named)
    t.ok(
      known.some((each) => each.startsWith(name)),
      name,
    )
})
