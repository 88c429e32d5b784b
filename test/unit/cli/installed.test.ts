/** The npx commands that `gatehouse dev` replaces with the package's own program. */
import { join } from 'node:path'
import t from 'tap'
import { startedCommand } from '../../../runtime/toolkit/local/processes/npx.ts'

function packageFiles(name: string, version: string, bin: unknown, start = '#!/usr/bin/env node\n') {
  return { 'package.json': JSON.stringify({ name, version, bin }), 'cli.js': `${start}0\n` }
}

t.test('dev: a package in npx’s cache or in the project runs without npx', async (t) => {
  const root = t.testdir({
    home: {
      '.npm': {
        _npx: {
          aaa: {
            node_modules: {
              '.package-lock.json': '{}',
              '@scope': { tool: packageFiles('@scope/tool', '1.2.3', { tool: 'cli.js', other: 'x.js' }) },
              shell: packageFiles('shell', '1.0.0', 'cli.js', '#!/bin/sh\n'),
              outside: packageFiles('outside', '1.0.0', '../shell/cli.js'),
              many: packageFiles('many', '1.0.0', { a: 'cli.js', b: 'cli.js' }),
            },
          },
          half: { node_modules: { part: packageFiles('part', '1.0.0', 'cli.js') } },
        },
      },
    },
    project: {
      'package.json': '{}',
      node_modules: { local: packageFiles('local', '2.0.0', './cli.js') },
      deep: {},
    },
  })
  const home = join(root, 'home')
  const cwd = join(root, 'project/deep')
  const started = (...argv: string[]) => {
    const [first = '', ...rest] = startedCommand(argv, cwd, { HOME: home })
    return [/[/\\]node$/.test(first) ? 'node' : first, ...rest]
  }
  const cached = join(home, '.npm/_npx/aaa/node_modules/@scope/tool/cli.js')
  const local = join(root, 'project/node_modules/local/cli.js')
  const rows: readonly (readonly [string[], string[]])[] = [
    [
      ['npx', '-y', '@scope/tool@1.2.3', 'a', '-b'],
      ['node', cached, 'a', '-b'],
    ],
    [
      ['npx', '--yes', '@scope/tool@1.2.3'],
      ['node', cached],
    ],
    [
      ['npx', 'local', 'x'],
      ['node', local, 'x'],
    ],
    [
      ['npx', 'local@2.0.0'],
      ['node', local],
    ],
  ]
  for (const [argv, expected] of rows) t.strictSame(started(...argv), expected, argv.join(' '))
  const left = [
    'npx -y @scope/tool a',
    'npx -y @scope/tool@1.2.4',
    'npx -y @scope/tool@latest',
    'npx -y @scope/tool@^1.2.3',
    'npx local@3.0.0',
    'npx -p local tool',
    'npx -y shell@1.0.0',
    'npx -y outside@1.0.0',
    'npx -y many@1.0.0',
    'npx -y part@1.0.0',
    'npx -y ../local',
    'npx',
    'uvx tool@1.0.0',
  ]
  for (const line of left) t.strictSame(started(...line.split(' ')), line.split(' '), `left to npx: ${line}`)
})
