/** The request path in ARCHITECTURE.md. `node test/helpers/vmcp/request-path.ts --write` updates it. */
import t from 'tap'
import { formatRequestPath, listedRequestPath, measureRequestPath } from '../../helpers/vmcp/request-path.ts'

t.test('request path: ARCHITECTURE.md lists the functions that a warm call runs', async (t) => {
  t.equal(listedRequestPath(), formatRequestPath(await measureRequestPath()))
})
