/** Benchmark peer: a virtual server in front of the backends given as arguments. Prints its port. */
import { makeLog } from '../../../runtime/observe/index.ts'
import { startTestVmcp } from '../../helpers/vmcp.ts'

const backends = Object.fromEntries(process.argv.slice(2).map((url, i) => [`b${i}`, url]))
const vmcp = await startTestVmcp(backends, {}, { log: makeLog({ level: 'warn', destination: '/dev/null' }) })
process.stdout.write(`${new URL(vmcp.url).port}\n`)
