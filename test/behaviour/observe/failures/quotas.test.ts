/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { quotaFailures } from '../../../helpers/failures/quotas.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, quotaFailures)
