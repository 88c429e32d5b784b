/** Each command in the README and the main guides is run by a session, covered by a named test, or listed with a reason. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'
import { clusterSession } from '../../helpers/docs/cluster-session.ts'
import { commandPages, commandsIn } from '../../helpers/docs/commands.ts'
import { covered, notRun } from '../../helpers/docs/elsewhere.ts'
import { sessions } from '../../helpers/docs/sessions.ts'

const nameOf = (page: string): string => basename(page, '.md')
const commands = commandPages.flatMap(commandsIn)
const steps = [...sessions, clusterSession].flatMap(({ steps }) => steps)
const isRun = (page: string, text: string) =>
  steps.some((step) => step.page === page && step.command === text)
const beginsWith = (list: readonly { readonly command: string }[] = [], text = '') =>
  list.some(({ command }) => text.startsWith(command))

t.test('each command has a session, a test or a reason', async (t) => {
  t.ok(commands.length > 90, `${commands.length} commands`)
  for (const { page, text } of commands) {
    const name = nameOf(page)
    t.ok(
      isRun(page, text) || beginsWith(covered[name], text) || beginsWith(notRun[name], text),
      `${page}: ${text}`,
    )
  }
})

t.test('each step of a session, each test and each reason belongs to a command', async (t) => {
  for (const { page, command } of steps)
    t.ok(
      commands.some((found) => found.page === page && found.text === command),
      `${page}: ${command}`,
    )
  for (const table of [covered, notRun])
    for (const [name, rows] of Object.entries(table))
      for (const { command } of rows)
        t.ok(
          commands.some(
            ({ page, text }) => nameOf(page) === name && !isRun(page, text) && text.startsWith(command),
          ),
          `${name}: ${command}`,
        )
})

t.test('each named test contains the command', async (t) => {
  for (const { test, contains } of Object.values(covered).flat())
    t.ok(readFileSync(test, 'utf8').includes(contains), `${test}: ${contains}`)
})

t.test('the page on verification lists exactly the commands that cannot run', async (t) => {
  const [, section = ''] = readFileSync('docs/evidence/verification.md', 'utf8').split(
    '\n## Commands in the guides\n',
  )
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| `'))
  const expected = Object.entries(notRun).flatMap(([name, list]) =>
    list.map(({ command, reason }) => `| \`${command}\` | ${name} | ${reason} |`),
  )
  t.same(rows, expected)
})
