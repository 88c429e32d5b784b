/** Checks that every flag in the guide of the doctor exists. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { addDoctorCommand } from '../../../runtime/tools/doctor/command.ts'

const page = readFileSync('docs/guides/doctor.md', 'utf8')

t.test('guide: every flag in it exists', async (t) => {
  const program = new Command()
  addDoctorCommand(program)
  const known = new Set(program.commands.flatMap(({ options }) => options.map(({ long }) => long)))
  // Flags of kubectl, Keycloak and the proxy command in fixes.
  for (const flag of [
    '--server-side',
    '--hostname',
    '--proxy-headers',
    '--remote-auth-authorize-url',
    '--remote-auth-token-url',
  ])
    known.add(flag)
  const named = new Set([...page.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag))
  t.ok(named.size > 12)
  for (const flag of named) t.ok(known.has(flag), flag)
})
