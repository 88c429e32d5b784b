/** The start of the command line: its imports, and the completeness of the command list. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(120_000)

const runtime = join(import.meta.dirname, '../../../runtime')

await t.test('start: a feature is loaded only for its own command', async (t) => {
  const loadedBy = (file: string) =>
    [...readFileSync(join(runtime, file), 'utf8').matchAll(/^import (?!type ).* from '(.+)'$/gm)]
      .map(([, from]) => from)
      .toSorted((a, b) => String(a).localeCompare(String(b)))
  t.same(loadedBy('cli/main.ts'), ['../toolkit/terminal/program.ts', './commands.ts'])
  t.same(loadedBy('toolkit/terminal/program.ts'), [
    '../../../schemas/index.ts',
    './command.ts',
    './output.ts',
    './plain-text.ts',
    './self.ts',
    'commander',
  ])
  t.same(loadedBy('cli/commands.ts'), [])
})

await t.test('start: every command in the list has a help text', async (t) => {
  const { stdout } = await runGatehouse(['--help'])
  const names = [...(/Commands:\n([\s\S]*?)\n\n/.exec(stdout)?.[1] ?? '').matchAll(/^ {2}(\w+)/gm)].map(
    ([, name]) => name ?? '',
  )
  t.ok(names.length > 10, names.join(' '))
  for (const [at, name] of names.filter((each) => each !== 'help').entries()) {
    const own = await runGatehouse([name, '--help'])
    t.match(own, { code: 0, stdout: new RegExp(`^Usage: gatehouse ${name} `) }, name)
    // `help NAME` becomes `NAME --help` before any command is loaded, so some names are enough.
    if (at % 8 === 0) t.equal((await runGatehouse(['help', name])).stdout, own.stdout, `help ${name}`)
  }
})

await t.test('start: an unknown command is reported with a suggestion', async (t) => {
  const { code, stderr } = await runGatehouse(['prxy'])
  t.equal(code, 2)
  t.match(stderr, /unknown command 'prxy'[\s\S]*Did you mean proxy\?/)
})
