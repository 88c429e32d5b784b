/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { backendFailures } from '../../../helpers/failures/backends.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, backendFailures)
