/**
 * The self-check of an installation: it interprets the API server's responses and reports which step failed and why.
 */
import t from 'tap'
import type { ClusterRequest, ClusterResponse } from '../../../../hooks/base/api-server.ts'
import { assertAdmission } from '../../../../hooks/check/admission.ts'

const admitted = { status: 201, body: {} }
const refusal = (message: string): ClusterResponse => ({ status: 403, body: { message } })
const byWebhook = refusal(
  'admission webhook "validate.gatehouse.dev" denied the request: spec.config.policies[0]: …',
)

/** Returns the given responses in order and records the requests. */
function apiServer(answers: readonly ClusterResponse[], sent: ClusterRequest[] = []) {
  const left = [...answers]
  return async (request: ClusterRequest): Promise<ClusterResponse> => {
    sent.push(request)
    return left.shift() ?? admitted
  }
}

await t.test(
  'check: a valid object is admitted and an invalid one rejected by the webhook, both as dry runs',
  async (t) => {
    const sent: ClusterRequest[] = []
    await assertAdmission(apiServer([admitted, byWebhook], sent), 'here')
    t.equal(sent.length, 2)
    for (const { method, path } of sent) {
      t.equal(method, 'POST')
      t.equal(path, '/apis/gatehouse.dev/v1beta1/namespaces/here/mcpauthzconfigs?dryRun=All')
    }
  },
)

await t.test('check: a failure names the step and the reason', async (t) => {
  const fails = (answers: readonly ClusterResponse[]) => assertAdmission(apiServer(answers), 'here')
  await t.rejects(fails([refusal('failed calling webhook: x509')]), {
    message: /the API server rejected a valid object \(403 failed calling webhook: x509\)/,
  })
  await t.rejects(fails([admitted, admitted]), { message: /does not call the webhook/ })
  await t.rejects(fails([admitted, refusal('quota exceeded')]), {
    message: /for an unexpected reason \(403 quota exceeded\)/,
  })
})
