/** Edits of manifests in the ways that editors save files. */
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { watchFiles } from '../../../../runtime/toolkit/local/watch.ts'
import { runGatehouse } from '../../../helpers/gatehouse.ts'

interface Case {
  readonly watched: (dir: string) => string
  readonly edit: (dir: string, round: number) => void
}

const cases: Readonly<Record<string, Case>> = {
  'a file that is replaced by rename': {
    watched: (dir) => join(dir, 'a.yaml'),
    edit(dir, round) {
      writeFileSync(join(dir, 'a.yaml.new'), `round: ${round}\n`)
      renameSync(join(dir, 'a.yaml.new'), join(dir, 'a.yaml'))
    },
  },
  'a file of a folder that is replaced by rename': {
    watched: (dir) => dir,
    edit(dir, round) {
      writeFileSync(join(dir, '.a.yaml.swp'), `round: ${round}\n`)
      renameSync(join(dir, '.a.yaml.swp'), join(dir, 'a.yaml'))
    },
  },
  'a file that is removed and written again': {
    watched: (dir) => join(dir, 'a.yaml'),
    edit(dir, round) {
      rmSync(join(dir, 'a.yaml'))
      writeFileSync(join(dir, 'a.yaml'), `round: ${round}\n`)
    },
  },
  'a new file in a new folder': {
    watched: (dir) => dir,
    edit(dir, round) {
      mkdirSync(join(dir, `folder-${round}`))
      writeFileSync(join(dir, `folder-${round}`, 'b.yaml'), 'b: 1\n')
    },
  },
}

for (const [name, { watched, edit }] of Object.entries(cases)) {
  await t.test(`watch: ${name}: ten edits cause ten notifications`, async (t) => {
    const dir = t.testdir({ 'a.yaml': 'round: 0\n' })
    const seen = new EventEmitter()
    const stop = await watchFiles([watched(dir)], {
      onChange: () => seen.emit('change'),
      onError: (error) => t.fail(String(error)),
    })
    t.teardown(stop)
    for (let round = 1; round <= 10; round++) {
      const change = once(seen, 'change')
      edit(dir, round)
      await change
    }
    t.pass('every edit was seen')
  })
}

await t.test('dev: input that cannot run is rejected at once with a hint', async (t) => {
  const dir = t.testdir({ 'mcp.json': '{"mcpServers": {"a": {"command": "x"}}}' })
  const missing = await runGatehouse(['dev', '-f', join(dir, 'absent')])
  t.match(missing, { code: 2, stderr: /\/absent: no such file or folder/ })
  const client = await runGatehouse(['dev', '-f', join(dir, 'mcp.json')])
  t.match(client, { code: 2, stderr: /gatehouse import .*mcp\.json --save FOLDER/ })
  const input = await runGatehouse(['dev', '-f', '-'], 'apiVersion: gatehouse.dev/v1beta1\nkind: MCPServer\n')
  t.match(input, { code: 1, stderr: /-:1: MCPServer\/\(no name\)/ }, 'standard input is read')
})
