/** Checks that every flag in the guide of the doctor exists, and that the reference contains every code and provider. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { addDoctorCommand } from '../../../runtime/tools/doctor/command.ts'
import { codes, profiles } from '../../../runtime/tools/doctor/index.ts'

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

t.test('reference: every code and every provider has a row', async (t) => {
  const reference = readFileSync('docs/reference/doctor.md', 'utf8')
  for (const [code, { expected, fix }] of Object.entries(codes))
    t.ok(reference.includes(`| \`${code}\` | ${expected} | ${fix} |`), code)
  for (const { id, title, quirks } of profiles)
    t.ok(reference.includes(`| ${title} | \`${id}\` | ${quirks.join('; ')} |`), id)
})
