/** A name that does not resolve fails only its own request, in each kind of dispatcher, and never the process. */
import t from 'tap'
import { makeDispatcher, makeFetch } from '../../../runtime/net/index.ts'

// RFC 6761: names below .invalid never resolve.
const url = 'http://nowhere.invalid/'

for (const guard of [false, true]) {
  t.test(`unknown host: a fetch is rejected, guard ${guard}`, async (t) => {
    await t.rejects(makeFetch({ guard })(url), 'an error, not a crash')
  })
}

t.test('unknown host: a dispatched request gets an error', async (t) => {
  const dispatcher = makeDispatcher({})
  const told = await new Promise<Error>((resolve) => {
    dispatcher.dispatch(
      { origin: new URL(url).origin, path: '/', method: 'GET' },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData() {},
        onResponseEnd() {},
        onResponseError: (_controller: unknown, error: Error) => resolve(error),
      },
    )
  })
  t.match(told, { code: /ENOTFOUND|EAI_AGAIN/ })
  await dispatcher.close()
})
