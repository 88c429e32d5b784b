/**
 * Runs tap and ends with the plain line `N passed, N failed, N skipped`.
 *
 * Arguments are handed to tap (paths, --jobs); without any, all tests run. Exit code 1 when anything failed.
 */
import { spawn } from 'node:child_process'

const tap = spawn('tap', ['--reporter=terse', ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
let tail = ''
tap.stdout.setEncoding('utf8').on('data', (text: string) => {
  process.stdout.write(text)
  tail = (tail + text).slice(-4000)
})
tap.on('close', (code) => {
  const count = (word: string) =>
    Number(new RegExp(`${word}: (\\d+)`).exec(tail.slice(tail.lastIndexOf('# {')))?.[1] ?? 0)
  const total = count('total')
  // A run that did not get to its summary has failed, whatever it printed before.
  const failed = total === 0 ? 1 : count('fail')
  process.stdout.write(
    `\n${count('pass')} passed, ${failed} failed, ${count('skip') + count('todo')} skipped\n`,
  )
  process.exitCode = code === 0 && failed === 0 ? 0 : 1
})
