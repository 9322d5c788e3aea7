// Go's net/http and pgx 4, over the same tables as this service and with the same kind of statement: the same stored JSON,
// and the key looked up in the statement that reads.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v4/pgxpool"
)

const keyOf = "select organization_id from api_keys where key_hash = $1 and revoked_at is null"
const owned = "organization_id = (select organization_id from k)"

type search struct {
	Organization   *string    `json:"organization"`
	Limit          int        `json:"limit"`
	Offset         int        `json:"offset"`
	Id             *string    `json:"id"`
	Pet            *string    `json:"pet"`
	Subscription   *string    `json:"subscription"`
	HomeClinic     *string    `json:"home_clinic"`
	ProductCode    *string    `json:"product_code"`
	InvoiceLine    *string    `json:"invoice_line"`
	IncludeDeleted bool       `json:"include_deleted"`
	CreatedAtSince *time.Time `json:"created_at_since"`
	UpdatedAtSince *time.Time `json:"updated_at_since"`
}

var pool *pgxpool.Pool
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("content-type", "application/json")
	w.Header().Set("content-length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func refuse(w http.ResponseWriter, status int, detail string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("www-authenticate", "Bearer")
	}
	body, _ := json.Marshal(map[string]string{"detail": detail})
	send(w, status, body)
}

func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// Reads with the organization of the key as k. The first row has the organization, the others a record.
func answer(w http.ResponseWriter, r *http.Request, invalid error, organization *string, text string, values []any, before, after string) {
	scheme, key, found := strings.Cut(r.Header.Get("authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		refuse(w, http.StatusUnauthorized, "The API key is missing or invalid")
		return
	}
	hash := sha256.Sum256([]byte(key))
	if invalid != nil {
		text, values = "select null as record where false", nil
	}
	rows, err := pool.Query(r.Context(), "with k as materialized ("+keyOf+
		") select organization_id, null as record from k union all select null, r.record from ("+text+") r",
		append([]any{hash[:]}, values...)...)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "The record store is down")
		return
	}
	defer rows.Close()
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	page := append((*buffer)[:0], before...)
	owner, records := "", 0
	for rows.Next() {
		raw := rows.RawValues()
		if raw[0] != nil {
			owner = string(raw[0])
			continue
		}
		if records++; records > 1 {
			page = append(page, ',')
		}
		page = append(page, raw[1]...)
	}
	page = append(page, after...)
	*buffer = page
	switch {
	case rows.Err() != nil:
		refuse(w, http.StatusServiceUnavailable, "The record store is down")
	case owner == "":
		refuse(w, http.StatusUnauthorized, "The API key is missing or invalid")
	case invalid != nil:
		refuse(w, http.StatusUnprocessableEntity, invalid.Error())
	case organization != nil && *organization != owner:
		refuse(w, http.StatusBadRequest, "organization does not match the organization of the API key")
	case before == "" && records == 0:
		refuse(w, http.StatusNotFound, "No such record")
	default:
		send(w, http.StatusOK, page)
	}
}

func serveSearch(w http.ResponseWriter, r *http.Request) {
	body := search{Limit: 100}
	invalid := decode(r, &body)
	if invalid == nil && (body.Limit < 1 || body.Limit > 1000 || body.Offset < 0 || body.Offset > math.MaxInt32) {
		invalid = errors.New("out of range")
	}
	conditions, values := []string{owned}, []any{}
	where := func(condition string, value any) {
		values = append(values, value)
		conditions = append(conditions, condition+strconv.Itoa(len(values)+1))
	}
	for column, value := range map[string]*string{
		"id = $": body.Id, "pet = $": body.Pet, "subscription = $": body.Subscription, "home_clinic = $": body.HomeClinic,
		"product_code = $": body.ProductCode, "invoice_line = $": body.InvoiceLine,
	} {
		if value != nil {
			where(column, *value)
		}
	}
	for column, value := range map[string]*time.Time{
		"updated_at >= $": body.UpdatedAtSince, "created_at >= $": body.CreatedAtSince,
	} {
		if value != nil {
			where(column, *value)
		}
	}
	if !body.IncludeDeleted {
		conditions = append(conditions, "not is_deleted")
	}
	text := fmt.Sprintf("select record from consumption_logs where %s order by updated_at, id limit %d offset %d",
		strings.Join(conditions, " and "), body.Limit, body.Offset)
	answer(w, r, invalid, body.Organization, text, values, `{"body":[`, "]}")
}

func serveGet(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Organization *string `json:"organization"`
		Id           string  `json:"id"`
	}
	invalid := decode(r, &body)
	if invalid == nil && body.Id == "" {
		invalid = errors.New("id is missing")
	}
	text := "select record from consumption_logs where " + owned + " and id = $2"
	answer(w, r, invalid, body.Organization, text, []any{body.Id}, "", "")
}

func main() {
	var err error
	// By its own estimates, Postgres plans some statements anew each time: 4.7 ms of CPU instead of 0.4.
	settings := "?pool_max_conns=10&plan_cache_mode=force_generic_plan"
	pool, err = pgxpool.Connect(context.Background(), os.Getenv("DATABASE_URL")+settings)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/api/v3/consumption-logs/search", serveSearch)
	http.HandleFunc("/api/v3/consumption-logs/get", serveGet)
	fmt.Printf("Listening on http://%s\n", listener.Addr())
	panic(http.Serve(listener, nil))
}
