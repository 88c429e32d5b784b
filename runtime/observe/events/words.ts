/** Next steps that apply to several events. */
export const checkRedis =
  'check that Redis is running and that its address, password and network path are correct'
export const checkDecisionPoint =
  'check that the decision point is running and responds to POST <url>/decision with status 200 and {"allow": true or false} as application/json'

export function checkWebhook(webhook: string): string {
  return `check that webhook ${webhook} is running and responds with status 200, content type application/json, and the members version, uid and allowed`
}
