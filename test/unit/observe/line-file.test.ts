/** The log's writes to a file descriptor: batches, short writes, full pipes. */
import t from 'tap'
import { makeLineFile } from '../../../runtime/observe/line-file.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

await t.test('line file: lines of one turn are written together, in order', async (t) => {
  const writes: string[] = []
  const file = makeLineFile(9, { writeSync: (_fd, bytes) => writes.push(bytes.toString()) && bytes.length })
  file.write('a\n')
  file.write('b\n')
  await turn()
  file.write('c\n')
  file.flushSync()
  t.same(writes, ['a\nb\n', 'c\n'])
})

await t.test('line file: a short write is continued, and a full pipe is retried', async (t) => {
  let text = ''
  let full = true
  const file = makeLineFile(9, {
    writeSync(_fd, bytes) {
      if (full && text.length >= 2) throw Object.assign(new Error('full'), { code: 'EAGAIN' })
      text += bytes.toString('utf8', 0, 1)
      return 1
    },
  })
  file.write('abc\n')
  file.flushSync()
  t.equal(text, 'ab')
  full = false
  file.write('d\n')
  file.flushSync()
  t.equal(text, 'abc\nd\n')
})

await t.test(
  'line file: beyond the limit the oldest lines are dropped, and the loss is reported',
  async (t) => {
    let text = ''
    const file = makeLineFile(9, {
      writeSync(_fd, bytes) {
        text += bytes.toString()
        return bytes.length
      },
    })
    const line = `${'x'.repeat(99_999)}\n`
    for (let i = 0; i < 12; i++) file.write(line)
    file.flushSync()
    t.match(text, /"dropped":2/)
    t.equal(text.split('\n').length, 12)
  },
)

await t.test('line file: a stalled reader costs bounded memory and no repeated copies', async (t) => {
  let full = true
  let attempted = 0
  let text = ''
  const losses: number[] = []
  const file = makeLineFile(9, {
    writeSync(_fd, bytes) {
      if (full) {
        attempted = Math.max(attempted, bytes.length)
        throw Object.assign(new Error('full'), { code: 'EAGAIN' })
      }
      text += bytes.toString()
      return bytes.length
    },
    onLoss: (lines) => losses.push(lines),
  })
  const line = `${'x'.repeat(9_999)}\n`
  for (let i = 0; i < 1_000; i++) {
    file.write(line)
    file.flushSync()
  }
  t.equal(attempted, 10_000, 'each retry writes only the first batch')
  const lost = losses.reduce((sum, lines) => sum + lines, 0)
  t.equal(lost, 1_000 - 1 - 104, 'losses are reported during the stall')
  full = false
  file.flushSync()
  t.match(text, new RegExp(`"dropped":${lost},`))
  t.equal(text.split(line).length - 1, 1_000 - lost)
})
