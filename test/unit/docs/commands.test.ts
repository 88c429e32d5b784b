/** Each command in the README and the main guides is run by a session, covered by a named test, or listed with a reason. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'
import { clusterSession } from '../../helpers/docs/cluster-session.ts'
import { commandPages, commandsIn } from '../../helpers/docs/commands.ts'
import { coveredCommands, excludedCommands, matchesCommand } from '../../helpers/docs/covered-commands.ts'
import { sessions } from '../../helpers/docs/sessions.ts'
import {
  noDefinitions,
  noHooks,
  noMetacontroller,
  symptomSessions,
} from '../../helpers/docs/symptom-sessions.ts'

const nameOf = (page: string): string => basename(page, '.md')
const commands = commandPages.flatMap(commandsIn)
const allSessions = [
  ...sessions,
  clusterSession,
  ...symptomSessions,
  noDefinitions,
  noMetacontroller,
  noHooks,
]
const steps = allSessions.flatMap(({ steps }) => steps)
const isRun = (page: string, text: string) =>
  steps.some((step) => step.page === page && step.command === text)

t.test('each command has exactly one of: a session, a test, a reason', async (t) => {
  t.ok(commands.length > 90, `${commands.length} commands`)
  for (const { page, text } of commands) {
    const name = nameOf(page)
    const rows = [...(coveredCommands[name] ?? []), ...(excludedCommands[name] ?? [])]
    const matching = rows.filter((row) => matchesCommand(row, text))
    t.equal(matching.length, isRun(page, text) ? 0 : 1, `${page}: ${text}`)
  }
})

t.test('each step of a session, each test and each reason belongs to a command', async (t) => {
  for (const { page, command } of steps)
    t.ok(
      commands.some((found) => found.page === page && found.text === command),
      `${page}: ${command}`,
    )
  for (const table of [coveredCommands, excludedCommands])
    for (const [name, rows] of Object.entries(table))
      for (const row of rows)
        t.ok(
          commands.some(({ page, text }) => nameOf(page) === name && matchesCommand(row, text)),
          `${name}: ${row.command}`,
        )
})

t.test('each named test contains the text of its row', async (t) => {
  for (const { test, contains } of Object.values(coveredCommands).flat())
    t.ok(readFileSync(test, 'utf8').includes(contains), `${test}: ${contains}`)
})

t.test('the page on verification lists exactly the commands that no test can run', async (t) => {
  const [, section = ''] = readFileSync('docs/evidence/verification.md', 'utf8').split(
    '\n## Commands in the guides\n',
  )
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| `'))
  const expected = Object.entries(excludedCommands).flatMap(([name, list]) =>
    list.map(({ command, reason }) => `| \`${command}\` | ${name} | ${reason} |`),
  )
  t.same(rows, expected)
})
