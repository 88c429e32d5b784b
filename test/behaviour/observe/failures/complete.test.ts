/** The tables contain at least thirty failures, and every event type that is a failure. */
import t from 'tap'
import type { EventType } from '../../../../runtime/observe/events/fields.ts'
import { nextSteps } from '../../../../runtime/observe/events/next-steps.ts'
import { eventTable } from '../../../../runtime/observe/events/table.ts'
import { authServerFailures } from '../../../helpers/failures/authserver.ts'
import { backendFailures } from '../../../helpers/failures/backends.ts'
import { certificateFailures } from '../../../helpers/failures/certificates.ts'
import { callFailures } from '../../../helpers/failures/calls.ts'
import { listFailures } from '../../../helpers/failures/lists.ts'
import { quotaFailures } from '../../../helpers/failures/quotas.ts'
import { settingFailures } from '../../../helpers/failures/settings.ts'

const failures = [
  ...authServerFailures,
  ...certificateFailures,
  ...backendFailures,
  ...callFailures,
  ...listFailures,
  ...quotaFailures,
  ...settingFailures,
]

/** Types that a virtual server alone cannot cause. Each has its own test. */
const elsewhere: Partial<Record<EventType, string>> = {
  attach_state: 'an attached stdio server: test/behaviour/proxy/attached/reports.test.ts',
  backend_message_unassigned:
    'two callers of one backend session: test/security/vmcp/shared-backends.test.ts',
  console_policies: 'a console with a login: test/behaviour/console/role-failures.test.ts',
  console_user_untold: 'a console with a login: test/behaviour/console/role-failures.test.ts',
  quota_memory_full: 'tens of thousands of callers: test/unit/policy/quotas/memory.test.ts',
  openapi_response_mismatch: 'a REST service: test/behaviour/vmcp/openapi/calls.test.ts',
  openapi_response_unchecked: 'a REST service: test/behaviour/vmcp/openapi/output-check.test.ts',
  openapi_settings_unused: 'an OpenAPI document: test/behaviour/vmcp/openapi/documents.test.ts',
  openapi_document: 'an OpenAPI document: test/behaviour/vmcp/openapi/documents.test.ts',
  server_line_too_long: 'an attached stdio server: test/behaviour/proxy/attached/reports.test.ts',
  server_requests_lost: 'an attached stdio server: test/behaviour/proxy/attached/reports.test.ts',
  server_overloaded: 'hundreds of requests at once: test/behaviour/vmcp/overload.test.ts',
  session_unsaved: 'a store that goes away within a request: test/unit/observe/recent-failures.test.ts',
}

/** Events that close a problem and never open one. */
const recoveries: ReadonlySet<string> = new Set([
  'audit_recovered',
  'backend_included',
  'config_reloaded',
  'lists_recovered',
  'token_check_recovered',
])

t.test('the tables contain at least thirty failures', async (t) => {
  t.ok(failures.length >= 30, String(failures.length))
  const names = failures.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
})

t.test('each failure type is tested', async (t) => {
  const driven = new Set<string>(failures.map(({ type }) => type))
  for (const type of Object.keys(eventTable) as EventType[]) {
    const isFailure = (type in nextSteps || eventTable[type].condition !== undefined) && !recoveries.has(type)
    if (isFailure) t.ok(driven.has(type) || elsewhere[type], type)
  }
  for (const type of Object.keys(elsewhere)) t.notOk(driven.has(type), `${type} is driven now`)
})

t.test('failures of single calls have a reason for having no condition', async (t) => {
  for (const { name, lasts, silent } of failures) t.ok(lasts || silent?.condition, name)
})
