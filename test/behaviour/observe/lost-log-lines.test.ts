/** A stalled reader of standard error: requests continue, and the dropped lines are counted and reported. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { freePort, program } from '../../helpers/gatehouse.ts'
import { until } from '../../helpers/redis.ts'

const requests = 400
/** A log line contains the path. */
const path = `/${'x'.repeat(4_000)}`

t.test(
  'lines that are dropped because a log reader stalls are counted in the metrics and in the log',
  async (t) => {
    const [port, metricsPort] = [await freePort(), await freePort()]
    const child = spawn(
      process.execPath,
      [
        program,
        'proxy',
        'stalled',
        '--target-uri',
        'http://127.0.0.1:9',
        '--port',
        String(port),
        '--metrics-port',
        String(metricsPort),
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    t.teardown(async () => {
      if (child.exitCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    })
    const lost = async (): Promise<number> => {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
      return Number(/^gatehouse_log_lines_lost_total (\d+)$/m.exec(text)?.[1])
    }
    await until(() =>
      lost().then(
        () => true,
        () => false,
      ),
    )
    t.equal(await lost(), 0)
    for (let n = 0; n < requests; n++) await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    await until(async () => (await lost()) > 0)
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    await until(() => Promise.resolve(/"dropped":\d+/.test(text)))
    t.equal(await lost(), Number(/"dropped":(\d+)/.exec(text)?.[1]), 'the count in the log')
    const complete = text.split('\n').filter((line) => line.includes('"message":"request"')).length
    t.ok(complete < requests, `${complete} of ${requests} lines were written`)
  },
)
