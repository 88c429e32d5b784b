/** Each of these failures is driven against a running server, and five views tell the same of it. */
import t from 'tap'
import { quotaFailures } from '../../../helpers/failures/quotas.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, quotaFailures)
