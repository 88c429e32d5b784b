/** The flags and clients in the clients guide exist. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import t from 'tap'
import { addBundleCommand } from '../../../runtime/tools/bundle/command.ts'
import { addClientCommand, addImportCommand } from '../../../runtime/tools/clients/command.ts'
import { addImportToolhiveCommand } from '../../../runtime/tools/migration/command.ts'
import { addRunCommand } from '../../../runtime/tools/run/command.ts'
import { clientIds } from '../../../runtime/toolkit/clients/index.ts'

const page = readFileSync('docs/guides/clients.md', 'utf8')

t.test('guide: every flag in it exists', async (t) => {
  const program = new Command().enablePositionalOptions()
  addImportCommand(program, addImportToolhiveCommand)
  addClientCommand(program)
  addBundleCommand(program)
  addRunCommand(program)
  const all = program.commands.flatMap((command) => [command, ...command.commands])
  const known = new Set(all.flatMap(({ options }) => options.map(({ long }) => long)))
  // Flags of the proxy command.
  for (const flag of ['--target-uri', '--remote-auth']) known.add(flag)
  const named = new Set([...page.matchAll(/--[a-z][a-z-]*[a-z]/g)].map(([flag]) => flag))
  t.ok(named.size > 20)
  for (const flag of named) t.ok(known.has(flag), flag)
})

t.test('guide: every client is listed', async (t) => {
  for (const id of clientIds) t.ok(page.includes(`\`${id}\``), id)
})
