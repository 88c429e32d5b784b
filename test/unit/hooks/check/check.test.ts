/** The check of an installation: what the API server answers is told apart, and a failure says which step and why. */
import t from 'tap'
import type { ClusterRequest, ClusterResponse } from '../../../../hooks/base/api-server.ts'
import { assertAdmission } from '../../../../hooks/check/admission.ts'

const admitted = { status: 201, body: {} }
const refusal = (message: string): ClusterResponse => ({ status: 403, body: { message } })
const byWebhook = refusal(
  'admission webhook "validate.gatehouse.dev" denied the request: spec.config.policies[0]: …',
)

/** Answers the good object, then the wrong one; keeps what it was sent. */
function apiServer(answers: readonly ClusterResponse[], sent: ClusterRequest[] = []) {
  const left = [...answers]
  return async (request: ClusterRequest): Promise<ClusterResponse> => {
    sent.push(request)
    return left.shift() ?? admitted
  }
}

await t.test(
  'check: a good object is admitted, a wrong one refused by the webhook; both are dry runs',
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

await t.test('check: a failure says which step and why', async (t) => {
  const fails = (answers: readonly ClusterResponse[]) => assertAdmission(apiServer(answers), 'here')
  await t.rejects(fails([refusal('failed calling webhook: x509')]), {
    message: /the API server rejected a valid object \(403 failed calling webhook: x509\)/,
  })
  await t.rejects(fails([admitted, admitted]), { message: /does not call the webhook/ })
  await t.rejects(fails([admitted, refusal('quota exceeded')]), {
    message: /for an unexpected reason \(403 quota exceeded\)/,
  })
})
