/** Benchmark peer: the proxy in front of the target given as argument, without a request log. Prints its port. */
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { makeDispatcher } from '../../../runtime/net/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { startProxy } from '../../../runtime/proxy/server.ts'

const [target = ''] = process.argv.slice(2)
const proxy = await startProxy({
  target: parseTarget(target),
  host: '127.0.0.1',
  port: 0,
  dispatcher: makeDispatcher({ origin: target }),
  log: makeLog({ level: 'warn' }),
})
process.stdout.write(`${proxy.port}\n`)
