/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { callFailures } from '../../../helpers/failures/calls.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, callFailures)
