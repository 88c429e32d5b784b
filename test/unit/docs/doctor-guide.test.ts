/** The guide of the doctor speaks of flags, codes and providers that exist, and leaves none out. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { addDoctorCommand } from '../../../runtime/tools/doctor/command.ts'
import { profiles } from '../../../runtime/tools/doctor/profiles/index.ts'
import { codes } from '../../../runtime/tools/doctor/report/codes.ts'

const page = readFileSync('docs/guides/doctor.md', 'utf8')

t.test('guide: every flag of the command is in it or in its help, and no other', async (t) => {
  const program = new Command()
  addDoctorCommand(program)
  const known = new Set(program.commands.flatMap(({ options }) => options.map(({ long }) => long)))
  // Of kubectl, Keycloak and the proxy command, in fixes.
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

t.test('guide: every code with its expectation and fix', async (t) => {
  for (const [code, { expected, fix }] of Object.entries(codes))
    t.ok(page.includes(`| \`${code}\` | ${expected} | ${fix} |`), code)
})

t.test('guide: every provider with what is known of it', async (t) => {
  for (const { id, title, quirks } of profiles)
    t.ok(page.includes(`| ${title} | \`${id}\` | ${quirks.join('; ')} |`), id)
})
