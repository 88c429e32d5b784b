/**
 * A server of several processes that its requests control, to test runtime/workers without any feature. Arguments:
 * number of workers, the pauses before a replacement (early, first, longest), the interval of the liveness checks and
 * the longest silence of a worker, all in milliseconds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen, silentLog } from '../../../runtime/net/index.ts'
import { makeLog, standardErrorLines } from '../../../runtime/observe/index.ts'
import { isWorker, serveAsWorker, type WorkerChannel, Workers } from '../../../runtime/process/index.ts'

const [count = 1, earlyMs = 0, firstMs = 0, longestMs = 0, lookMs = 10_000, silentMs = 60_000] = process.argv
  .slice(2)
  .map(Number)
const log = makeLog({ name: isWorker ? String(process.pid) : 'primary' })

async function answer(req: IncomingMessage, res: ServerResponse, channel: WorkerChannel): Promise<void> {
  const [, what, argument] = (req.url ?? '').split('/')
  if (what === 'die') process.exit(1)
  if (what === 'lines') {
    const line = JSON.stringify({ name: process.pid, text: 'x'.repeat(Number(argument)) })
    for (let i = 0; i < 8; i++) standardErrorLines().write(`${line}\n`)
  }
  if (what === 'slow') await new Promise((resolve) => setTimeout(resolve, Number(argument)))
  if (what === 'pids') res.end(JSON.stringify(await channel.call('pids')))
  else if (what === 'unknown') res.end(await channel.call('unknown').catch((error) => error.code))
  else res.end(String(process.pid))
}

if (isWorker) {
  await serveAsWorker(async ({ channel, connections, offer }) => {
    offer({ pid: () => process.pid })
    return listen({
      host: '127.0.0.1',
      port: 0,
      log: silentLog,
      connections,
      limits: { headersTimeoutMs: 300, checkIntervalMs: 50 },
      handler: (req, res) => void answer(req, res, channel),
    })
  })
} else {
  const workers = await Workers.start({
    host: '127.0.0.1',
    port: 0,
    count,
    log,
    waits: { earlyMs, firstMs, longestMs },
    silence: { lookMs, silentMs },
    offers: { pids: () => workers.ask('pid') },
  })
  process.stdout.write(`port ${workers.address.port}\n`)
  process.once('SIGTERM', () => void workers.close(2_000).then(() => log.info('ended')))
}
