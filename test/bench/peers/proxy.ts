/** Benchmark peer: the proxy in front of a target, without a request log. Argument: the target's URL as JSON. Prints its port as a JSON array. */
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { makeDispatcher } from '../../../runtime/net/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { startProxy } from '../../../runtime/proxy/server/server.ts'

const target = JSON.parse(process.argv[2] ?? '""') as string
const proxy = await startProxy({
  target: parseTarget(target),
  host: '127.0.0.1',
  port: 0,
  dispatcher: makeDispatcher({ origin: target }),
  log: makeLog({ level: 'warn' }),
})
process.stdout.write(`[${proxy.port}]\n`)
