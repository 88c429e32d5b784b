/**
 * Syncs one virtual server repeatedly, each time from text, and measures the remaining memory, because a hook keeps no
 * state. Run with `--expose-gc`. Arguments: number of backends, number of syncs. Prints the heap in bytes after each
 * tenth, as JSON.
 */
import { makeHooks } from '../../../hooks/index.ts'
import { testSettings } from '../../hooks/world.ts'
import { requestOf } from './world.ts'

const tenths = 10
const [backends = 0, syncs = 0] = process.argv.slice(2).map(Number)
const hook = makeHooks(testSettings).byKind('VirtualMCPServer')
if (!hook || !globalThis.gc) throw new Error('no hook for VirtualMCPServer, or no --expose-gc')
const text = requestOf(backends)
const heaps: number[] = []
let count = 0
for (let tenth = 0; tenth < tenths; tenth++) {
  // Names and versions differ, as between real servers and writes.
  for (let i = 0; i < syncs / tenths; i++, count++) {
    const body = text.replaceAll('"door', `"door-${count}`)
    JSON.stringify(hook.sync(JSON.parse(body)))
  }
  globalThis.gc()
  globalThis.gc()
  heaps.push(process.memoryUsage().heapUsed)
}
process.stdout.write(JSON.stringify(heaps))
